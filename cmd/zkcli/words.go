package zkcli

import (
	"context"
	"fmt"
	"io"
	"net"

	"platter/coord/zkclient"
)

// wordBytesMax bounds the answer to a four-letter word.
const wordBytesMax = 64 << 20

// Word sends a four-letter word to each server and prints the answers. It needs no session.
func Word(ctx context.Context, o Options, word string) error {
	servers, _, err := zkclient.ParseConnect(o.Connect)
	if err != nil {
		return err
	}
	if len(word) != 4 {
		return fmt.Errorf("%q has not four letters", word)
	}
	for _, addr := range servers {
		if err := sendWord(ctx, o, addr, word); err != nil {
			return fmt.Errorf("%s: %w", addr, err)
		}
	}
	return nil
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
	if err == nil && n == 0 {
		return fmt.Errorf("no answer to %s", word)
	}
	return err
}
