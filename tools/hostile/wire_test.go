package hostile

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"platter/engine/batch"
)

// setCRC makes a bent batch's checksum right again, so that what is checked behind it is reached.
func setCRC(b batch.Batch) {
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
}

// produce sends records in a Produce request of version 8 and returns the partition's error code.
func (v *victim) produce(records []byte) (int16, error) {
	v.t.Helper()
	c := v.dial()
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("bent"))
	if _, err := c.Write(f.AppendRequest(nil, produce(8, records), 5)); err != nil {
		return 0, err
	}
	var head [8]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return 0, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:])-4)
	if _, err := io.ReadFull(c, body); err != nil {
		return 0, err
	}
	resp := kmsg.NewPtrProduceResponse()
	resp.Version = 8
	if err := resp.ReadFrom(body); err != nil {
		return 0, err
	}
	return resp.Topics[0].Partitions[0].ErrorCode, nil
}

// logEnd is the topic's log end offset.
func (v *victim) logEnd() int64 {
	v.t.Helper()
	cl := v.client()
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	if err != nil {
		v.t.Fatal(err)
	}
	o, _ := ends.Lookup(topic, 0)
	return o.Offset
}

// said is what the log says behind position before; a line may come after the connection's end.
func (v *victim) said(before int) string {
	for range 6000 {
		if said := v.Log()[before:]; strings.HasSuffix(said, "\n") {
			return said
		}
		time.Sleep(10 * time.Millisecond)
	}
	return v.Log()[before:]
}
