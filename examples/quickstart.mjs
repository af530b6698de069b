// SPDX-License-Identifier: Apache-2.0
// A sandbox from start to end with E2B's own SDK. Needs E2B_API_URL, E2B_SANDBOX_URL and
// E2B_API_KEY, as `soma serve` prints them:
//
//   npm install e2b && node quickstart.mjs
import assert from 'node:assert/strict'
import http from 'node:http'
import { Sandbox, CommandExitError } from 'e2b'

const sandbox = await Sandbox.create({ timeoutMs: 120_000, metadata: { example: 'quickstart js' } })
console.log('created', sandbox.sandboxId)
try {
  // Output arrives while the command runs.
  const arrivals = []
  const counted = await sandbox.commands.run('for i in 1 2 3; do echo "line $i"; sleep 0.3; done; echo oops >&2', {
    onStdout: (text) => { arrivals.push(Date.now()); process.stdout.write(`  ${text}`) },
  })
  assert.equal(counted.stdout, 'line 1\nline 2\nline 3\n')
  assert.equal(counted.stderr, 'oops\n')
  assert.equal(counted.exitCode, 0)
  assert.ok(arrivals.at(-1) - arrivals[0] > 300, 'output was held back until the end')

  // A failing command is an exception that carries its exit code.
  await assert.rejects(sandbox.commands.run('exit 3'), (e) => e instanceof CommandExitError && e.exitCode === 3)

  // Standard input.
  const cat = await sandbox.commands.run('cat', { background: true, stdin: true })
  await sandbox.commands.sendStdin(cat.pid, 'through stdin\n')
  await sandbox.commands.closeStdin(cat.pid)
  assert.equal((await cat.wait()).stdout, 'through stdin\n')

  // Files.
  const written = await sandbox.files.write('soma-demo/hello.txt', 'hello from outside')
  console.log('wrote', written.path)
  assert.equal(await sandbox.files.read('soma-demo/hello.txt'), 'hello from outside')
  const listed = await sandbox.files.list('soma-demo')
  assert.deepEqual(listed.map((entry) => [entry.name, entry.type]), [['hello.txt', 'file']])
  assert.equal(await sandbox.files.exists('soma-demo/nothing'), false)
  await sandbox.files.rename('soma-demo/hello.txt', 'soma-demo/moved.txt')
  await sandbox.files.remove('soma-demo')
  assert.equal(await sandbox.files.exists('soma-demo'), false)

  // A web server inside, asked from outside by its host name. Only the Host header routes, so no
  // DNS is needed for this.
  const server = await sandbox.commands.run(
    'cd $(mktemp -d) && echo served > index.html && exec python3 -m http.server 8123', { background: true })
  const text = await ask(sandbox.getHost(8123))
  assert.equal(text, 'served\n')
  console.log('web server inside says', JSON.stringify(text))
  await server.kill()

  // Life: its end can be moved, and it is in the list of its owner.
  await sandbox.setTimeout(60_000)
  const page = await Sandbox.list({ query: { metadata: { example: 'quickstart js' } } }).nextItems()
  assert.ok(page.some((item) => item.sandboxId === sandbox.sandboxId))
  assert.equal(await sandbox.isRunning(), true)
} finally {
  await sandbox.kill()
}
assert.equal(await sandbox.isRunning(), false)
assert.equal(await Sandbox.kill(sandbox.sandboxId), false)
console.log('killed; all good')

// GET / of a host that is served by E2B_SANDBOX_URL, again while nothing listens there yet.
async function ask(host) {
  const { hostname, port } = new URL(process.env.E2B_SANDBOX_URL)
  for (let attempt = 0; ; ++attempt) {
    const { status, body } = await new Promise((resolve, reject) => {
      http.get({ hostname, port, path: '/', headers: { host } }, (response) => {
        let body = ''
        response.setEncoding('utf8').on('data', (chunk) => { body += chunk })
        response.on('end', () => resolve({ status: response.statusCode, body }))
      }).on('error', reject)
    })
    if (status === 200) return body
    if (attempt === 300) throw new Error(`port not open: ${status} ${body}`)
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}
