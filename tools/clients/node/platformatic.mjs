// What @platformatic/kafka is put through: see ../python/scenario.py. Usage: node platformatic.mjs BOOTSTRAP REPLICAS SUFFIX
import { inspect } from 'node:util'
import { Admin, Consumer, ListOffsetTimestamps, Producer, stringDeserializers, stringSerializers } from '@platformatic/kafka'
import { brokers, replicas, suffix, records, more, partitions, record, check, want, startMs } from './scenario.mjs'

const base = { clientId: 'matrix', bootstrapBrokers: brokers }
const admin = new Admin(base)

async function produce(topic, compression, first, count) {
  const producer = new Producer({ ...base, serializers: stringSerializers, idempotent: true })
  const messages = Array.from({ length: count }, (_, i) => {
    const r = record(first + i)
    return { topic, key: r.key, value: r.value, partition: r.partition, timestamp: BigInt(r.timestamp), headers: { h: '1' } }
  })
  try {
    await producer.send({ messages, compression, acks: -1 })
  } finally {
    await producer.close()
  }
}

// read adds to got until it has count records.
async function read(consumer, options, got, count) {
  const stream = await consumer.consume({ autocommit: false, maxWaitTime: 200, ...options })
  for await (const m of stream) {
    if (!had.has(m.topic + m.key)) {
      had.add(m.topic + m.key)
      got.push({ partition: m.partition, offset: Number(m.offset), key: m.key, value: m.value })
    }
    await m.commit()
    if (got.length === count) break
  }
  await stream.close()
}

// groupRead reads as a group's only member. A consumer of this client looks for the group's coordinator once (#coordinatorId
// in its consumer.js): when another broker has become it, the application needs another consumer.
async function groupRead(groupId, options, count) {
  const got = []
  const late = setTimeout(() => want(false, `only ${got.length} of ${count} records`), 180000)
  while (got.length < count) {
    const consumer = new Consumer({ ...base, ...short, groupId, deserializers: stringDeserializers })
    try {
      await read(consumer, options, got, count)
    } catch (e) {
      console.log('again after', e.message)
    }
    await consumer.close(true).catch((e) => console.log('again after', e.message))
  }
  clearTimeout(late)
  return got
}

// Nor can such a consumer leave its group: the next one waits until its session is over, by default for a minute.
const short = { sessionTimeout: 6000, heartbeatInterval: 2000, rebalanceTimeout: 10000 }
const had = new Set() // what groups have read before: their last commits may not have come through

for (const compression of ['none', 'gzip', 'snappy', 'lz4', 'zstd']) {
  const topic = `platformatic-${compression}${suffix}`
  const group = `platformatic-group-${compression}${suffix}`
  await admin.createTopics({ topics: [topic], partitions, replicas })
  try {
    await produce(topic, compression, 0, records)
  } catch (e) {
    if (!inspect(e).includes('is not supported in the current Node.js version')) throw e
    console.log('skipped', compression, 'which this Node.js does not have')
    continue
  }
  const committed = { topics: [topic], mode: 'committed', fallbackMode: 'earliest' }
  check(await groupRead(group, committed, records), 0, records)
  await produce(topic, compression, records, more)
  check(await groupRead(group, committed, more), records, more)
  const offsets = Array.from({ length: partitions }, (_, partition) => ({ topic, partition, offset: 5n }))
  had.clear()
  const [first] = await groupRead(`seek-${group}`, { topics: [topic], mode: 'manual', offsets }, 1)
  want(first.offset === 5, `seek to 5 gave ${first.offset}`)
  const seeker = new Consumer({ ...base, groupId: `look-${group}`, deserializers: stringDeserializers })
  const at = await seeker.listOffsets({ topics: [topic], timestamp: BigInt(startMs + 1000 * 7 - 1) })
  want(at.get(topic)[1] === 3n, `the time look-up gave ${at.get(topic)}`)
  want((await seeker.listOffsets({ topics: [topic], timestamp: ListOffsetTimestamps.LATEST })).get(topic)[0] === 200n, 'the end is elsewhere')
  await seeker.close(true)
  console.log('ok', compression)
}
await admin.close()
