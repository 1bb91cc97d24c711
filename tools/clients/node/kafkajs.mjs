// What kafkajs is put through: see ../python/scenario.py. Usage: node kafkajs.mjs BOOTSTRAP REPLICAS SUFFIX
import kafkajs from 'kafkajs'
import SnappyCodec from 'kafkajs-snappy'
import zstdCodec from 'zstd-codec'
import { brokers, replicas, suffix, records, more, partitions, record, check, want, startMs } from './scenario.mjs'

const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = kafkajs
CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec
// kafkajs brings gzip alone. For LZ4 there is no package without native parts that writes what Kafka's own
// clients can read (independent blocks).
const zstd = await new Promise((resolve) => zstdCodec.ZstdCodec.run((z) => resolve(new z.Simple())))
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async (encoder) => Buffer.from(zstd.compress(encoder.buffer, 3)),
  decompress: async (buffer) => Buffer.from(zstd.decompress(buffer)),
})

const kafka = new Kafka({ clientId: 'matrix', brokers, logLevel: logLevel.ERROR })
const admin = kafka.admin()

// again does step, and does it anew after an error that kafkajs itself calls retriable: it retries a send, and a consumer
// that runs, but not all of what comes before.
async function again(step) {
  for (const until = Date.now() + 60000; ;) {
    try {
      return await step()
    } catch (e) {
      if (!e.retriable || Date.now() > until) throw e
      console.log('again after', e.message)
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
}

async function produce(topic, compression, first, count) {
  const producer = kafka.producer({ idempotent: true })
  await again(() => producer.connect())
  const messages = Array.from({ length: count }, (_, i) => {
    const r = record(first + i)
    return { key: r.key, value: r.value, partition: r.partition, timestamp: String(r.timestamp), headers: { h: '1' } }
  })
  await producer.send({ topic, compression, acks: -1, messages })
  await producer.disconnect()
}

const had = new Set() // what groups have read before: their last commits may not have come through

// groupRead reads as a group's only member. A commit that goes to who was the coordinator fails; eachMessage is called
// again some times, then the consumer is started anew, all by kafkajs.
function groupRead(topic, groupId, count, got) {
  return new Promise((resolve, reject) => {
    const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: 200 })
    const late = setTimeout(() => reject(new Error(`only ${got.length} of ${count} records`)), 180000)
    const done = async () => {
      clearTimeout(late)
      await consumer.disconnect().catch((e) => console.log('again after', e.message)) // it tells the former coordinator
      resolve(got)
    }
    again(() => consumer.connect())
      .then(() => again(() => consumer.subscribe({ topic, fromBeginning: true })))
      .then(() => consumer.run({
        autoCommit: false,
        eachMessage: async ({ partition, message }) => {
          const key = message.key.toString()
          if (!had.has(topic + key)) {
            had.add(topic + key)
            got.push({ partition, offset: Number(message.offset), key, value: message.value.toString() })
          }
          await consumer.commitOffsets([{ topic, partition, offset: String(Number(message.offset) + 1) }])
          if (got.length === count) setImmediate(done)
        },
      })).catch((e) => {
        clearTimeout(late)
        consumer.disconnect().catch(() => {}).then(() => reject(e))
      })
  })
}

// seekTo reads the first record from an offset on.
function seekTo(topic, groupId, offset) {
  return new Promise((resolve, reject) => {
    const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: 200 })
    let first
    again(() => consumer.connect())
      .then(() => again(() => consumer.subscribe({ topic, fromBeginning: true })))
      .then(() => consumer.run({
        autoCommit: false,
        eachMessage: async ({ partition, message }) => {
          if (partition !== 0 || first !== undefined || Number(message.offset) < offset) return
          first = Number(message.offset)
          setImmediate(() => consumer.disconnect().catch((e) => console.log('again after', e.message)).then(() => resolve(first)))
        },
      })).catch(reject)
    consumer.on(consumer.events.GROUP_JOIN, () => consumer.seek({ topic, partition: 0, offset: String(offset) }))
  })
}

await again(() => admin.connect())
for (const [name, compression] of [
  ['none', CompressionTypes.None], ['gzip', CompressionTypes.GZIP], ['snappy', CompressionTypes.Snappy],
  ['zstd', CompressionTypes.ZSTD],
]) {
  const topic = `kafkajs-${name}${suffix}`
  await again(() => admin.createTopics({ topics: [{ topic, numPartitions: partitions, replicationFactor: replicas }] }))
  await produce(topic, compression, 0, records)
  const first = []
  const then = []
  check(await again(() => groupRead(topic, `kafkajs-group-${name}${suffix}`, records, first)), 0, records)
  await produce(topic, compression, records, more)
  check(await again(() => groupRead(topic, `kafkajs-group-${name}${suffix}`, more, then)), records, more)
  const sought = await again(() => seekTo(topic, `kafkajs-seek-${name}${suffix}`, 350 / partitions))
  want(sought === 350 / partitions, `seek to ${350 / partitions} gave ${sought}`)
  const at = await again(() => admin.fetchTopicOffsetsByTimestamp(topic, startMs + 1000 * 7 - 1))
  want(at.find((p) => p.partition === 1).offset === '3', `the time look-up gave ${JSON.stringify(at)}`)
  console.log('ok', name)
}
await admin.disconnect()
