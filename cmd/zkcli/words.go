package zkcli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"platter/coord/zkclient"
)

// wordBytesMax bounds the answer to a four-letter word.
const wordBytesMax = 64 << 20

// notListed is what a server says behind a word that its settings do not allow (ZooKeeper's NopCommand).
const notListed = " is not executed because it is not in the whitelist."

// Word sends a four-letter word to each server and prints the answers. It needs no session. The error names all
// servers that have not answered, or that refuse the word.
func Word(ctx context.Context, o Options, word string) error {
	servers, _, err := zkclient.ParseConnect(o.Connect)
	if err != nil {
		return err
	}
	if len(word) != 4 {
		return fmt.Errorf("%q has not four letters", word)
	}
	var failed []error
	for _, addr := range servers {
		if err := sendWord(ctx, o, addr, word); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", addr, err))
		}
	}
	return errors.Join(failed...)
}

func sendWord(ctx context.Context, o Options, addr, word string) error {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.Close() })()
	if _, err := io.WriteString(nc, word); err != nil {
		return err
	}
	answer := bufio.NewReader(io.LimitReader(nc, wordBytesMax))
	refusal := word + notListed
	if head, _ := answer.Peek(len(refusal)); string(head) == refusal {
		return fmt.Errorf("%s is not answered there: it is not in 4lw.commands.whitelist", word)
	}
	// Out behind a plain Writer: when it is a pipe whose reader has gone, a write to it ends the process without a word,
	// as of any other command; a splice would be an error.
	n, err := io.Copy(struct{ io.Writer }{o.Out}, answer)
	switch {
	case ctx.Err() != nil: // which is why the connection was closed
		return fmt.Errorf("no whole answer to %s: %w", word, ctx.Err())
	case err == nil && n == 0:
		return fmt.Errorf("no answer to %s", word)
	}
	return err
}
