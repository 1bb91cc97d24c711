package peer

import (
	"context"
	"encoding/binary"
	"time"

	"platter/coord/controller"
)

// appendRaw appends a whole frame whose body is at hand:
//
//	pos  size  field
//	  0     4  length of what follows
//	  4     2  api key
//	  6     2  version
//	  8     4  correlation id
//	 12    17  client id: ForwardClient with its length
//	 29     1  no tagged fields, in flexible versions
//	  …        body
func appendRaw(dst []byte, key, version int16, flexible bool, id int32, body []byte) []byte {
	n := 10 + len(ForwardClient) + len(body)
	if flexible {
		n++
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(n))
	dst = binary.BigEndian.AppendUint16(dst, uint16(key))
	dst = binary.BigEndian.AppendUint16(dst, uint16(version))
	dst = binary.BigEndian.AppendUint32(dst, uint32(id))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(ForwardClient)))
	dst = append(dst, ForwardClient...)
	if flexible {
		dst = append(dst, 0)
	}
	return append(dst, body...)
}

// timeoutOf is what is left of ctx, in milliseconds.
func timeoutOf(ctx context.Context) int32 {
	end, ok := ctx.Deadline()
	if !ok {
		return int32(30 * time.Second / time.Millisecond)
	}
	return int32(max(time.Until(end).Milliseconds(), 1))
}

// createErrors are CreateTopics' outcomes.
var createErrors = map[int16]error{
	7: controller.ErrTimeout, 17: controller.ErrInvalidTopic, 36: controller.ErrTopicExists, 37: controller.ErrInvalidPartitions,
	38: controller.ErrInvalidReplication, 39: controller.ErrInvalidAssignment, 40: controller.ErrInvalidConfig, 41: controller.ErrNotController,
}

func createError(code int16) error {
	if err := createErrors[code]; err != nil {
		return err
	}
	return errorOf(code)
}
