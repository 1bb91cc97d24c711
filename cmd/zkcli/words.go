package zkcli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"platter/coord/zkclient"
)

// wordBytesMax bounds the answer to a four-letter word.
const wordBytesMax = 64 << 20

// Word sends a four-letter word to each server and prints the answers. It needs no session. The error names all
// servers that have not answered.
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
	n, err := io.Copy(o.Out, io.LimitReader(nc, wordBytesMax))
	switch {
	case ctx.Err() != nil: // which is why the connection was closed
		return fmt.Errorf("no whole answer to %s: %w", word, ctx.Err())
	case err == nil && n == 0:
		return fmt.Errorf("no answer to %s", word)
	}
	return err
}
