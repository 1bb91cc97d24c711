package core

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// FuzzSubscription: no bytes do harm, and what is read is what kmsg reads. (kmsg takes negative lengths for
// null; Kafka, and so we, do not.)
func FuzzSubscription(f *testing.F) {
	for version := int16(0); version <= 3; version++ {
		m := kmsg.NewConsumerMemberMetadata()
		m.Version, m.Topics, m.UserData = version, []string{"a", "topic"}, []byte("data")
		f.Add(m.AppendTo(nil))
	}
	f.Add([]byte{0, 1, 0x7f, 0xff, 0xff, 0xff, 0, 1, 'a'})
	f.Add([]byte{0, 1, 0, 0, 0, 1, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, p []byte) {
		topics := map[string]bool{}
		m := kmsg.NewConsumerMemberMetadata()
		if !readSubscription(p, topics) || m.ReadFrom(p) != nil {
			return
		}
		for _, name := range m.Topics {
			if !topics[name] {
				t.Errorf("%q is missing in %v", name, topics)
			}
		}
	})
}
