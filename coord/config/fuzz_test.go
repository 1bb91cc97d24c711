package config

import (
	"os"
	"testing"
)

// FuzzLoad: whatever a server.properties says, it is refused or every setting can be read.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{"stock-zookeeper.properties", "stock-kraft.properties"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("listeners=PLAINTEXT://[::1]:0,A://:1\nlistener.security.protocol.map=PLAINTEXT:PLAINTEXT,A:PLAINTEXT\n"))
	f.Add([]byte("log.retention.hours=2147483647\nlog.roll.hours=1\ncompression.type=zstd\ncompression.zstd.level=22\n"))
	f.Add([]byte("zookeeper.connect=a,b:1,[::1]:2/x/y\nmax.connections.per.ip.overrides=a:1,[::1]:2\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		props, err := ParseProperties(text)
		if err != nil {
			return
		}
		b, _, err := Load(props, nil)
		if err != nil {
			return
		}
		for _, d := range BrokerDefs() {
			v, _ := b.Value(d.Name)
			switch d.Type {
			case Int, Short, Long:
				b.Int64(d.Name)
			case Boolean:
				b.Bool(d.Name)
			case List:
				b.List(d.Name)
			}
			if err := d.Check(v); err != nil && v != "" && chains[d.Name] == nil {
				t.Errorf("%s=%s was let in: %v", d.Name, v, err)
			}
		}
		if len(b.Listeners()) == 0 || len(b.Advertised()) == 0 || b.InterBroker() == "" {
			t.Errorf("listeners %v, advertised %v, between brokers %q", b.Listeners(), b.Advertised(), b.InterBroker())
		}
		b.ZooKeeper()
		b.Log(nil)
	})
}

// FuzzTopic: overrides are refused or the engine's settings can be made of them.
func FuzzTopic(f *testing.F) {
	f.Add("retention.ms", "1000", "compression.type", "zstd")
	f.Add("cleanup.policy", "compact,delete", "segment.bytes", "14")
	f.Add("message.timestamp.difference.max.ms", "9223372036854775807", "compression.gzip.level", "-1")
	b, _, err := Load(nil, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2 string) {
		overrides := map[string]string{name1: value1, name2: value2}
		if CheckTopic("t", overrides) != nil {
			return
		}
		c := b.Log(overrides)
		if c.SegmentBytes < 14 || c.MaxMessageBytes < 0 || b.MinISR(overrides) < 1 {
			t.Errorf("%v gave %+v", overrides, c)
		}
	})
}

// FuzzCoordinator: whatever a zoo.cfg says, it is refused or every setting can be read.
func FuzzCoordinator(f *testing.F) {
	text, err := os.ReadFile("testdata/debian-zoo.cfg")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("tickTime=1\nminSessionTimeout=5\nzookeeper.snapCount=7\nserver.1=a:1:2\nadmin.commandURL=/x\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		props, err := ParseProperties(text)
		if err != nil {
			return
		}
		c, _, err := LoadCoordinator(props, nil)
		if err != nil {
			return
		}
		for _, d := range CoordinatorDefs() {
			v := c.Value(d.Name)
			if err := d.Check(v); err != nil && v != "" && d.Support == Supported {
				t.Errorf("%s=%s was let in: %v", d.Name, v, err)
			}
		}
		if low, high := c.SessionTimeouts(); low > high {
			t.Errorf("timeouts from %d to %d", low, high)
		}
		c.Listener()
		c.Admin()
		c.Text()
	})
}
