// The command line and the events that the drivers in JavaScript share (conformance/peers/README.md).
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

const ASSIGNORS = ['range', 'roundrobin', 'sticky', 'cooperative-sticky']

function end (status, why) {
  console.error(why)
  process.exit(status)
}

// Returns the options; those that are not given are undefined. --version prints the version of the package.
export function options (pack) {
  const text = { type: 'string' }
  let values
  try {
    ({ values } = parseArgs({
      options: {
        bootstrap: text,
        group: text,
        topic: { type: 'string', multiple: true },
        protocol: { type: 'string', default: 'classic' },
        'instance-id': text,
        assignor: text,
        'session-timeout': text,
        'processing-ms': { type: 'string', default: '0' },
        commit: { type: 'string', default: 'sync' },
        version: { type: 'boolean' }
      }
    }))
  } catch (wrong) {
    end(2, wrong.message)
  }
  if (values.version) {
    console.log(JSON.parse(readFileSync(new URL(`node_modules/${pack}/package.json`, import.meta.url))).version)
    process.exit(0)
  }
  if (!values.bootstrap || !values.group || !values.topic) end(2, '--bootstrap, --group and --topic are needed')
  if (!['classic', 'consumer'].includes(values.protocol)) end(2, `no protocol ${values.protocol}`)
  if (!['sync', 'async', 'auto'].includes(values.commit)) end(2, `no way to commit ${values.commit}`)
  if (values.assignor && !ASSIGNORS.includes(values.assignor)) end(2, `no assignor ${values.assignor}`)
  const session = values['session-timeout'] && Number(values['session-timeout'])
  return {
    ...values,
    topics: values.topic,
    instanceId: values['instance-id'],
    processingMs: Number(values['processing-ms']),
    // the heartbeat interval is a third of the session timeout, at most a second
    timing: session ? { sessionTimeout: session, heartbeatInterval: Math.max(1, Math.min(1000, session / 3 | 0)) } : {}
  }
}

export function unsupported (wanted, what) {
  if (wanted) end(64, `unsupported: ${what}`)
}

export function say (event, more = {}) {
  console.log(JSON.stringify({ event, ...more }))
}

// Writes an error that the client reports and the driver survives, such as a refused commit.
export function complain (problem) {
  const message = String(problem?.message ?? problem)
  say('error', { message })
  console.error(`error: ${message}`)
}

// What a member holds, from assignments as {topic: [partitions]}: writes what came and what went.
export class Held {
  #held = new Map()

  assigned (assignment) {
    const now = new Map(Object.entries(assignment)
      .flatMap(([topic, numbers]) => numbers.map(number => [`${topic} ${number}`, [topic, number]])))
    this.#say('revoked', [...this.#held].filter(([key]) => !now.has(key)))
    this.#say('assigned', [...now].filter(([key]) => !this.#held.has(key)))
    this.#held = now
  }

  revoked () {
    this.#say('revoked', [...this.#held])
    this.#held = new Map()
  }

  #say (event, rows) {
    if (rows.length) say(event, { partitions: rows.map(([, row]) => row).sort((a, b) => a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1]) })
  }
}

let stop
let stopping = false
// Resolves at SIGTERM or SIGINT.
export const stopped = new Promise(resolve => { stop = resolve })
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => { stopping = true; stop() })

// Spends the time that a record takes; false: the driver was stopped before.
export async function processed (ms) {
  if (ms > 0) {
    let timer
    await Promise.race([stopped, new Promise(resolve => { timer = setTimeout(resolve, ms) })])
    clearTimeout(timer)
  }
  return !stopping
}

export function closed () {
  process.stdout.write(JSON.stringify({ event: 'closed' }) + '\n', () => process.exit(0))
}
