// What kafkajs is put through: see ../python/scenario.py. Usage: node kafkajs.mjs BOOTSTRAP
import kafkajs from 'kafkajs'
import SnappyCodec from 'kafkajs-snappy'
import { records, more, partitions, record, check, want, startMs } from './scenario.mjs'

const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = kafkajs
CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec

const kafka = new Kafka({ clientId: 'matrix', brokers: [process.argv[2]], logLevel: logLevel.ERROR })
const admin = kafka.admin()

async function produce(topic, compression, first, count) {
  const producer = kafka.producer({ idempotent: true })
  await producer.connect()
  const messages = Array.from({ length: count }, (_, i) => {
    const r = record(first + i)
    return { key: r.key, value: r.value, partition: r.partition, timestamp: String(r.timestamp), headers: { h: '1' } }
  })
  await producer.send({ topic, compression, acks: -1, messages })
  await producer.disconnect()
}

function groupRead(topic, groupId, count) {
  return new Promise((resolve, reject) => {
    const consumer = kafka.consumer({ groupId })
    const got = []
    const late = setTimeout(() => reject(new Error(`only ${got.length} of ${count} records`)), 40000)
    const done = async () => {
      clearTimeout(late)
      await consumer.disconnect()
      resolve(got)
    }
    consumer.connect()
      .then(() => consumer.subscribe({ topic, fromBeginning: true }))
      .then(() => consumer.run({
        autoCommit: false,
        eachMessage: async ({ partition, message }) => {
          got.push({ partition, offset: Number(message.offset), key: message.key.toString(), value: message.value.toString() })
          await consumer.commitOffsets([{ topic, partition, offset: String(Number(message.offset) + 1) }])
          if (got.length === count) setImmediate(done)
        },
      })).catch(reject)
  })
}

await admin.connect()
for (const [name, compression] of [['none', CompressionTypes.None], ['gzip', CompressionTypes.GZIP], ['snappy', CompressionTypes.Snappy]]) {
  const topic = `kafkajs-${name}`
  await admin.createTopics({ topics: [{ topic, numPartitions: partitions }] })
  await produce(topic, compression, 0, records)
  check(await groupRead(topic, `kafkajs-group-${name}`, records), 0, records)
  await produce(topic, compression, records, more)
  check(await groupRead(topic, `kafkajs-group-${name}`, more), records, more)
  const at = await admin.fetchTopicOffsetsByTimestamp(topic, startMs + 1000 * 7 - 1)
  want(at.find((p) => p.partition === 1).offset === '3', `the time look-up gave ${JSON.stringify(at)}`)
  console.log('ok', name)
}
await admin.disconnect()
