// SPDX-License-Identifier: Apache-2.0
// client.mjs ROUNDS NAME=URL=KEY...: the times of each server in milliseconds, as JSON, the servers taking turns.
import { Sandbox } from 'e2b'

const rounds = Number(process.argv[2])
const servers = process.argv.slice(3).map((word) => {
  const [name, url, key] = word.split('=')
  return { name, options: { apiUrl: url, sandboxUrl: url, apiKey: key } }
})

// create, first output of `echo`, kill; each from the beginning.
async function once(options) {
  const begin = performance.now()
  const sandbox = await Sandbox.create('base', options)
  const created = performance.now()
  await sandbox.commands.run('echo hi')
  const said = performance.now()
  await sandbox.kill()
  return { create: created - begin, run: said - created, all: performance.now() - begin }
}

const times = {}
const kept = {}
for (const { name, options } of servers) {
  times[name] = { create: [], run: [], all: [], true: [] }
  kept[name] = await Sandbox.create('base', options)
}
for (let number = 0; number < rounds + 5; ++number) {
  for (const { name, options } of servers) {
    const took = await once(options)
    const begin = performance.now()
    await kept[name].commands.run('true')
    took.true = performance.now() - begin
    if (number < 5) continue // the first ones warm connections and pools
    for (const [kind, value] of Object.entries(took)) times[name][kind].push(value)
  }
}
for (const sandbox of Object.values(kept)) await sandbox.kill()
console.log(JSON.stringify(times))
