package group

import (
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
)

// names keeps one string of each topic's name, instead of one for each committed offset.
type names struct {
	mu  sync.Mutex
	all map[string]string
}

// namesMax bounds what is kept; beyond it all are forgotten and gathered anew.
const namesMax = 100_000

func newNames() *names { return &names{all: map[string]string{}} }

// of is the one string that equals s.
func (n *names) of(s string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if known, ok := n.all[s]; ok {
		return known
	}
	if len(n.all) >= namesMax {
		clear(n.all)
	}
	n.all[s] = s
	return s
}

// prefixMax bounds what a member id has of the client's name for itself.
const prefixMax = 1024

// newMemberID is a member id that nobody has or ever had: the client's name for itself, and a random UUID.
func newMemberID(prefix string) string {
	if len(prefix) > prefixMax {
		prefix = strings.ToValidUTF8(prefix[:prefixMax], "")
	}
	var u [16]byte
	_, _ = rand.Read(u[:]) // never fails
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return fmt.Sprintf("%s-%x-%x-%x-%x-%x", prefix, u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
