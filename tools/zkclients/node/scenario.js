// node-zookeeper-client: what its users do, a line for each step that went well. usage: node scenario.js HOST:PORT
const zk = require('node-zookeeper-client');
const { promisify } = require('util');

const address = process.argv[2];
const client = zk.createClient(address, { sessionTimeout: 10000 });
const other = zk.createClient(address, { sessionTimeout: 10000 });
const call = (c, name, ...args) =>
  new Promise((resolve, reject) => c[name](...args, (err, ...out) => (err ? reject(err) : resolve(out))));
const connected = (c) => new Promise((resolve) => { c.once('connected', resolve); c.connect(); });

function check(name, ok) {
  console.log((ok ? 'ok ' : 'FAILED ') + name);
  if (!ok) process.exitCode = 1;
}

async function fails(name, code, promise) {
  try {
    await promise;
    check(name, false);
  } catch (e) {
    check(name, e.getCode && e.getCode() === code);
  }
}

async function main() {
  await Promise.all([connected(client), connected(other)]);
  const [path] = await call(client, 'create', '/node', Buffer.from('one'));
  check('create', path === '/node');
  await fails('create again', zk.Exception.NODE_EXISTS, call(client, 'create', '/node', Buffer.from('two')));
  let fired;
  const event = new Promise((resolve) => { fired = resolve; });
  const [data, stat] = await call(other, 'getData', '/node', fired);
  check('getData', data.toString() === 'one' && stat.version === 0);
  await call(client, 'setData', '/node', Buffer.from('two'), 0);
  const e = await event;
  check('watch', e.getType() === zk.Event.NODE_DATA_CHANGED && e.getPath() === '/node');
  await fails('bad version', zk.Exception.BAD_VERSION, call(client, 'setData', '/node', Buffer.from('x'), 0));
  const [seq] = await call(client, 'create', '/node/s-', null, zk.CreateMode.PERSISTENT_SEQUENTIAL);
  check('sequential', seq === '/node/s-0000000000');
  await call(client, 'create', '/node/e', null, zk.CreateMode.EPHEMERAL);
  const [children, cstat] = await call(other, 'getChildren', '/node');
  check('getChildren', children.sort().join() === 'e,s-0000000000' && cstat.numChildren === 2);
  await call(client, 'mkdirp', '/node/a/b/c');
  const [there] = await call(client, 'exists', '/node/a/b/c');
  check('mkdirp', !!there);
  const [results] = await new Promise((resolve, reject) =>
    client.transaction().create('/node/t', Buffer.from('t')).check('/node', 1).setData('/node', Buffer.from('three'), 1)
      .remove('/node/s-0000000000').commit((err, r) => (err ? reject(err) : resolve([r]))));
  check('transaction', results.length === 4);
  await fails('transaction that fails', zk.Exception.NO_NODE, new Promise((resolve, reject) =>
    client.transaction().create('/node/u').remove('/node/none').commit((err, r) => (err ? reject(err) : resolve(r)))));
  const [rolledBack] = await call(client, 'exists', '/node/u');
  check('rolled back', !rolledBack);
  client.addAuthInfo('digest', Buffer.from('u:p'));
  await call(client, 'create', '/node/mine', Buffer.from('x'), zk.ACL.CREATOR_ALL_ACL);
  await fails('no permission', zk.Exception.NO_AUTH, call(other, 'getData', '/node/mine'));
  const [acls] = await call(client, 'getACL', '/node/mine');
  check('getACL', acls.length === 1 && acls[0].id.scheme === 'digest');
  const gone = new Promise((resolve) => { call(other, 'exists', '/node/e', resolve); });
  await call(other, 'exists', '/node');
  client.close();
  const g = await gone;
  check('ephemeral goes', g.getType() === zk.Event.NODE_DELETED);
  for (const p of ['/a/b/c', '/a/b', '/a']) await call(other, 'remove', '/node' + p);
  const [left] = await call(other, 'exists', '/node/a');
  check('remove', !left);
  other.close();
}

main().catch((e) => { console.log('FAILED', e); process.exitCode = 1; }).finally(() => setTimeout(() => process.exit(), 100));
