// Node clients on a server, one a run: each produces, joins a group, reads, commits, and resumes behind what it committed.
import { randomUUID } from 'node:crypto'

const [at, which] = process.argv.slice(2)
const topic = which

function same (found, wanted) {
  const text = [...found].sort().join(',')
  if (text !== wanted) throw new Error(`read ${text}, not ${wanted}`)
}

async function kafkajs () {
  const { Kafka, logLevel } = await import('kafkajs')
  const kafka = new Kafka({ brokers: [at], clientId: 'kafkajs', logLevel: logLevel.ERROR })
  const producer = kafka.producer()
  await producer.connect()
  const put = (...values) => producer.send({ topic, messages: values.map(value => ({ value })) })
  const read = async count => {
    const consumer = kafka.consumer({ groupId: 'kafkajs-' + topic, sessionTimeout: 10000 })
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    const found = []
    await new Promise((resolve, reject) => {
      consumer.run({
        autoCommit: false,
        eachMessage: async ({ partition, message }) => {
          found.push(message.value.toString())
          await consumer.commitOffsets([{ topic, partition, offset: String(Number(message.offset) + 1) }])
          if (found.length === count) resolve()
        }
      }).catch(reject)
    })
    await consumer.disconnect()
    return found
  }
  await put('a', 'b', 'c')
  same(await read(3), 'a,b,c')
  await put('d')
  same(await read(1), 'd')
  const admin = kafka.admin()
  await admin.connect()
  const { groups } = await admin.describeGroups(['kafkajs-' + topic])
  if (groups[0].state !== 'Empty') throw new Error(groups[0].state)
  await admin.deleteGroups(['kafkajs-' + topic])
  await admin.disconnect()
  await producer.disconnect()
}

async function platformatic (groupProtocol) {
  const { Consumer, Producer, MessagesStreamModes, stringDeserializers, stringSerializers } =
    await import('@platformatic/kafka')
  const producer = new Producer({ clientId: 'platformatic', bootstrapBrokers: [at], serializers: stringSerializers })
  const put = (...values) => producer.send({ messages: values.map(value => ({ topic, value, key: randomUUID() })) })
  const read = async count => {
    const consumer = new Consumer({
      clientId: 'platformatic',
      bootstrapBrokers: [at],
      groupId: topic,
      groupProtocol,
      deserializers: stringDeserializers,
      sessionTimeout: 10000,
      rebalanceTimeout: 20000,
      heartbeatInterval: 500
    })
    const stream = await consumer.consume({
      topics: [topic], autocommit: false, mode: MessagesStreamModes.COMMITTED, fallbackMode: 'earliest', maxWaitTime: 200
    })
    const found = []
    for await (const message of stream) {
      found.push(message.value)
      await message.commit()
      if (found.length === count) break
    }
    await stream.close()
    await consumer.close(true)
    return found
  }
  await put('a', 'b', 'c')
  same(await read(3), 'a,b,c')
  await put('d')
  same(await read(1), 'd')
  await producer.close()
}

const clients = {
  kafkajs,
  platformatic: () => platformatic('classic'),
  'platformatic-next': () => platformatic('consumer')
}
setTimeout(() => { console.error('a minute is over'); process.exit(1) }, 60000).unref()
await clients[which]()
console.log('ok')
process.exit(0)
