// What the JavaScript clients share; the same records as in ../python/scenario.py.
export const records = 300
export const more = 100
export const partitions = 2
// The scripts' arguments: BOOTSTRAP REPLICAS SUFFIX. The suffix makes names of their own for each turn.
export const brokers = process.argv[2].split(',')
export const replicas = Number(process.argv[3])
export const suffix = process.argv[4]
export const startMs = Date.now() - 3600000

export function want(condition, text) {
  if (!condition) {
    console.log('FAILED', text)
    process.exit(1)
  }
}

export function record(i) {
  return { key: `k${i}`, value: `value ${i} ` + 'x'.repeat(i % 50), partition: i % partitions, timestamp: startMs + 1000 * i }
}

export function check(got, first, count) {
  want(got.length === count, `${got.length} records came, ${count} were due`)
  got.sort((a, b) => Number(a.key.slice(1)) - Number(b.key.slice(1)))
  got.forEach((g, i) => {
    const r = record(first + i)
    want(g.partition === r.partition && g.key === r.key && g.value === r.value, `record ${first + i} came as ${JSON.stringify(g)}`)
    want(g.offset === Math.floor((first + i) / partitions), `record ${first + i} is at offset ${g.offset}`)
  })
}
