package disk

import "sync/atomic"

// sent is how many bytes of files have gone to sockets, of the whole process, by the way they went.
var sent = func() map[SendMethod]*atomic.Int64 {
	all := map[SendMethod]*atomic.Int64{}
	for _, m := range SendMethods {
		if m != SendAuto {
			all[m] = new(atomic.Int64)
		}
	}
	return all
}()

// CountSent notes that n bytes of a file went to a socket by a method that is not SendAuto: for who implements File.SendTo, or
// reads from a file what it then sends.
func CountSent(m SendMethod, n int64) { sent[m].Add(n) }

// SentBytes is how many bytes have gone to sockets by a method since the process began.
func SentBytes(m SendMethod) int64 { return sent[m].Load() }
