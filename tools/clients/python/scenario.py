"""What every Python client is put through: produce with each codec, consume in a group, commit, resume
from the commit, seek, and look up by time. Usage: scenario.py CLIENT BOOTSTRAP REPLICAS SUFFIX; the suffix makes names
of their own for each turn. Prints one line a step."""
import asyncio
import sys
import time

RECORDS, MORE, PARTITIONS = 300, 100, 2
START_MS = int(time.time() * 1000) - 3_600_000


def want(condition, text):
    if not condition:
        raise SystemExit("FAILED " + text)


def record(i):
    """key, value, partition and timestamp of record i."""
    return b"k%d" % i, b"value %d " % i + b"x" * (i % 50), i % PARTITIONS, START_MS + 1000 * i


def session(name, replicas):
    """The session timeout where there are several brokers, which may be restarted: a member whose goodbye went to the
    former coordinator is missed until its session is over."""
    return {name: 6000} if replicas > 1 else {}


def again(step, errors, *known):
    """Does step, and does it anew after one of the errors, which this client leaves to the application; known are
    those that then say that it was done the first time."""
    deadline, tried = time.time() + 30, False
    while True:
        try:
            return step()
        except known:
            if not tried:
                raise
            return None
        except errors as e:
            if time.time() > deadline:
                raise
            print("again after", type(e).__name__, e)
            tried = True
            time.sleep(0.1)


def check(got, first, count):
    """got is a list of (partition, offset, key, value); it must be the records first..first+count-1."""
    values = sorted(got, key=lambda g: int(g[2][1:]))
    want(len(got) == count, "%d records came, %d were due" % (len(got), count))
    for i, g in enumerate(values):
        key, value, partition, _ = record(first + i)
        want((g[0], g[2], g[3]) == (partition, key, value), "record %d came as %r" % (first + i, g))
        want(g[1] == (first + i) // PARTITIONS, "record %d is at offset %d" % (first + i, g[1]))


def confluent(bootstrap, replicas, suffix):
    from confluent_kafka import Consumer, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    base = {"bootstrap.servers": bootstrap}
    admin = AdminClient(base)

    def consumer(group):
        return Consumer({**base, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False, **session("session.timeout.ms", replicas)})

    def produce(topic, codec, first, count):
        p = Producer({**base, "compression.type": codec, "enable.idempotence": True})
        for i in range(first, first + count):
            key, value, partition, ts = record(i)
            p.produce(topic, value=value, key=key, partition=partition, timestamp=ts, headers={"h": b"1"})
        want(p.flush(30) == 0, "records were not acknowledged")

    def group_read(topic, group, count):
        c, got = consumer(group), []
        c.subscribe([topic])
        deadline = time.time() + 120
        while len(got) < count and time.time() < deadline:
            m = c.poll(1)
            if m is not None:
                want(m.error() is None, str(m.error()))
                want(m.headers() == [("h", b"1")], "headers %r" % m.headers())
                got.append((m.partition(), m.offset(), m.key(), m.value()))
        c.commit(asynchronous=False)
        c.close()
        return got

    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        topic, group = "confluent-" + codec + suffix, "confluent-group-" + codec + suffix
        admin.create_topics([NewTopic(topic, PARTITIONS, replicas)])[topic].result()
        produce(topic, codec, 0, RECORDS)
        check(group_read(topic, group, RECORDS), 0, RECORDS)
        produce(topic, codec, RECORDS, MORE)
        check(group_read(topic, group, MORE), RECORDS, MORE)
        c = consumer("other-" + group)
        c.assign([TopicPartition(topic, 0, 5)])
        m = c.poll(20)
        want(m is not None and m.offset() == 5, "seek to 5 gave %r" % m)
        at = c.offsets_for_times([TopicPartition(topic, 1, START_MS + 1000 * 7 - 1)], timeout=10)[0].offset
        want(at == 3, "the time look-up gave %d" % at)
        c.close()
        print("ok", codec)


def kafka_python(bootstrap, replicas, suffix):
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import KafkaAdminClient, NewTopic
    from kafka.errors import KafkaError, TopicAlreadyExistsError


    def create(topic):
        admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        try:
            admin.create_topics([NewTopic(topic, PARTITIONS, replicas)])
        finally:
            admin.close()

    def consumer(group):
        return KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False, **session("session_timeout_ms", replicas))

    def produce(topic, codec, first, count):
        p = KafkaProducer(bootstrap_servers=bootstrap, compression_type=codec, acks="all")
        sent = []
        for i in range(first, first + count):
            key, value, partition, ts = record(i)
            sent.append(p.send(topic, value=value, key=key, partition=partition, timestamp_ms=ts, headers=[("h", b"1")]))
        for f in sent:
            f.get(30)
        p.close()

    def group_read(topic, group, count):
        c, got = consumer(group), []
        c.subscribe([topic])
        deadline = time.time() + 120
        while len(got) < count and time.time() < deadline:
            for records in c.poll(timeout_ms=1000).values():
                got += [(r.partition, r.offset, r.key, r.value) for r in records]
        c.commit()
        c.close()
        return got

    for codec in (None, "gzip", "snappy", "lz4", "zstd"):
        name = codec or "none"
        topic, group = "kafka-python-" + name + suffix, "kafka-python-group-" + name + suffix
        # Its administrator's client asks the controller once, which may just have stopped, and goes on asking that one.
        again(lambda: create(topic), KafkaError, TopicAlreadyExistsError)
        produce(topic, codec, 0, RECORDS)
        check(group_read(topic, group, RECORDS), 0, RECORDS)
        produce(topic, codec, RECORDS, MORE)
        check(group_read(topic, group, MORE), RECORDS, MORE)
        c = consumer(None)
        part = TopicPartition(topic, 0)
        c.assign([part])
        c.seek(part, 5)
        first = next(iter(c))
        want(first.offset == 5, "seek to 5 gave %d" % first.offset)
        one = TopicPartition(topic, 1)
        at = c.offsets_for_times({one: START_MS + 1000 * 7 - 1})[one].offset
        want(at == 3, "the time look-up gave %d" % at)
        c.close()
        print("ok", name)


def aiokafka(bootstrap, replicas, suffix):
    asyncio.run(aiokafka_steps(bootstrap, replicas, suffix))


async def aiokafka_steps(bootstrap, replicas, suffix):
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic
    from aiokafka.errors import KafkaError

    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()

    async def produce(topic, codec, first, count):
        p = AIOKafkaProducer(bootstrap_servers=bootstrap, compression_type=codec, enable_idempotence=True)
        await p.start()
        sent = []
        for i in range(first, first + count):
            key, value, partition, ts = record(i)
            sent.append(await p.send(topic, value=value, key=key, partition=partition, timestamp_ms=ts, headers=[("h", b"1")]))
        await asyncio.gather(*sent)
        await p.stop()

    async def group_read(topic, group, count):
        c = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False, **session("session_timeout_ms", replicas))
        await c.start()
        got, deadline = [], time.time() + 120
        while len(got) < count and time.time() < deadline:
            for records in (await c.getmany(timeout_ms=1000)).values():
                got += [(r.partition, r.offset, r.key, r.value) for r in records]
        await c.commit()
        await c.stop()
        return got

    for codec in (None, "gzip", "snappy", "lz4", "zstd"):
        name = codec or "none"
        topic, group = "aiokafka-" + name + suffix, "aiokafka-group-" + name + suffix
        deadline = time.time() + 30
        while True:  # its administrator's client asks one broker once
            try:
                await admin.create_topics([NewTopic(topic, PARTITIONS, replicas)])
                break
            except KafkaError as e:
                if time.time() > deadline:
                    raise
                print("again after", type(e).__name__, e)
                await asyncio.sleep(0.1)
        await produce(topic, codec, 0, RECORDS)
        check(await group_read(topic, group, RECORDS), 0, RECORDS)
        await produce(topic, codec, RECORDS, MORE)
        check(await group_read(topic, group, MORE), RECORDS, MORE)
        c = AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
        await c.start()
        part, one = TopicPartition(topic, 0), TopicPartition(topic, 1)
        c.assign([part, one])
        c.seek(part, 5)
        first = await c.getone(part)
        want(first.offset == 5, "seek to 5 gave %d" % first.offset)
        at = (await c.offsets_for_times({one: START_MS + 1000 * 7 - 1}))[one].offset
        want(at == 3, "the time look-up gave %d" % at)
        await c.stop()
        print("ok", name)
    await admin.close()


if __name__ == "__main__":
    {"confluent-kafka": confluent, "kafka-python": kafka_python, "aiokafka": aiokafka}[sys.argv[1]](sys.argv[2], int(sys.argv[3]), sys.argv[4])
