package smtpsend

import (
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// errInterrupted is the cause when content was not finished because the relay sent something.
var errInterrupted = errors.New("the relay spoke in the middle of the content")

// writeListening writes content block by block and watches for a reply. A relay that gives up replies and may
// stop reading. Without the watch, the write would wait out the deadline, or a large message would be sent to
// the end for nothing.
func (c *session) writeListening(content *wireReader, limit time.Duration) error {
	var spoke atomic.Bool
	past := time.Unix(1, 0)
	heard := make(chan struct{})
	if err := c.raw.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	go func() {
		defer close(heard)
		if _, err := c.r.Peek(1); !isTimeout(err) {
			spoke.Store(true)
			_ = c.raw.SetWriteDeadline(past)
		}
	}()
	err := c.writeBlocks(content, limit, &spoke)
	_ = c.raw.SetReadDeadline(past)
	<-heard
	return err
}

// writeBlocks writes until done or spoke. The order of deadline, check and write matters: spoke is set before
// the deadline in the past.
func (c *session) writeBlocks(content *wireReader, limit time.Duration, spoke *atomic.Bool) error {
	for {
		block, end := content.next()
		if end != nil && end != io.EOF { //nolint:errorlint // next gives just that
			return end
		}
		if err := c.raw.SetWriteDeadline(time.Now().Add(limit)); err != nil {
			return err
		}
		if spoke.Load() {
			return errInterrupted
		}
		if _, err := c.conn.Write(block); err != nil {
			return err
		}
		if end != nil {
			return nil
		}
	}
}
