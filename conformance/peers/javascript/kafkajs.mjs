// Drives kafkajs.
import { closed, complain, Held, options, processed, say, stopped, unsupported } from './driver.mjs'

const given = options('kafkajs')
unsupported(given.protocol === 'consumer', 'kafkajs has no consumer protocol (KIP-848)')
unsupported(given.instanceId, 'kafkajs has no static membership')
unsupported(given.assignor && given.assignor !== 'roundrobin', `kafkajs has no assignor ${given.assignor}`)
const { Kafka, logLevel } = await import('kafkajs')

const kafka = new Kafka({ brokers: [given.bootstrap], clientId: 'kafkajs', logLevel: logLevel.NOTHING })
const consumer = kafka.consumer({ groupId: given.group, ...given.timing })
const held = new Held()
consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => held.assigned(payload.memberAssignment))
consumer.on(consumer.events.REBALANCING, () => held.revoked())
consumer.on(consumer.events.CRASH, ({ payload }) => {
  complain(payload.error)
  if (!payload.restart) process.exit(1)
})
consumer.on(consumer.events.COMMIT_OFFSETS, ({ payload }) => say('committed', {
  offsets: payload.topics.flatMap(({ topic, partitions }) =>
    partitions.map(({ partition, offset }) => [topic, Number(partition), Number(offset)]))
}))

async function eachMessage ({ topic, partition, message }) {
  if (!await processed(given.processingMs)) {
    // an exception, because an automatic commit covers each record whose function returned
    throw new Error('stopped before the record was processed')
  }
  say('processed', { topic, partition, offset: Number(message.offset) })
  if (given.commit === 'auto') return
  const done = consumer.commitOffsets([{ topic, partition, offset: String(Number(message.offset) + 1) }]).catch(complain)
  if (given.commit === 'sync') await done
}

async function run () {
  await consumer.connect()
  await consumer.subscribe({ topics: given.topics, fromBeginning: true })
  await consumer.run({ autoCommit: given.commit === 'auto', eachMessage })
}
run().catch(fatal => { complain(fatal); process.exit(1) })
await stopped
await consumer.disconnect()
closed()
