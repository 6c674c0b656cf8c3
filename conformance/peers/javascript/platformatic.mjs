// Drives @platformatic/kafka.
import { closed, complain, Held, options, processed, say, stopped, unsupported } from './driver.mjs'

const given = options('@platformatic/kafka')
const next = given.protocol === 'consumer'
unsupported(next && given.timing.sessionTimeout, 'the broker decides the session timeout of the consumer protocol')
unsupported(next && given.assignor && given.assignor !== 'range', `the consumer protocol has no assignor ${given.assignor}`)
unsupported(!next && given.assignor && given.assignor !== 'roundrobin', `@platformatic/kafka has no assignor ${given.assignor}`)
const { Consumer, MessagesStreamModes } = await import('@platformatic/kafka')

const consumer = new Consumer({
  clientId: 'platformatic',
  bootstrapBrokers: [given.bootstrap],
  groupId: given.group,
  groupProtocol: given.protocol,
  ...(given.instanceId ? { groupInstanceId: given.instanceId } : {}),
  ...(next && given.assignor ? { groupRemoteAssignor: given.assignor } : {}),
  ...given.timing
})
const held = new Held()
const assignment = () => Object.fromEntries((consumer.assignments ?? []).map(({ topic, partitions }) => [topic, partitions]))
// the client tells an assignment of the consumer protocol by no event
if (next) setInterval(() => held.assigned(assignment()), 20).unref()
else {
  consumer.on('consumer:group:join', () => held.assigned(assignment()))
  consumer.on('consumer:group:rebalance', () => held.revoked())
}
consumer.on('error', complain)

const committed = rows => say('committed', { offsets: rows.map(row => [row.topic, row.partition, Number(row.offset)]) })

async function run () {
  const stream = await consumer.consume({
    topics: given.topics,
    autocommit: given.commit === 'auto' ? 1000 : false,
    mode: MessagesStreamModes.COMMITTED,
    fallbackMode: 'earliest',
    maxWaitTime: 200
  })
  stream.on('error', complain)
  stream.on('autocommit', (error, offsets) => error ? complain(error) : committed(offsets))
  for await (const { topic, partition, offset, commit } of stream) {
    // not `return`: leaving the loop destroys the stream, and the client then closes without leaving its group
    if (!await processed(given.processingMs)) await new Promise(() => {})
    if (next) held.assigned(assignment()) // a record may come before the next look at the assignment
    say('processed', { topic, partition, offset: Number(offset) })
    if (given.commit === 'auto') continue
    const done = commit().then(() => committed([{ topic, partition, offset: offset + 1n }])).catch(complain)
    if (given.commit === 'sync') await done
  }
}
run().catch(fatal => { complain(fatal); process.exit(1) })
await stopped
await consumer.close(true)
closed()
