package s3log

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
)

// unzipper is the memory that reading an object takes; most objects are smaller than it.
type unzipper struct {
	in  *bufio.Reader
	zip *gzip.Reader
	buf []byte // of the records
}

func (l *loading) unzipper() *unzipper {
	select {
	case u := <-l.idle:
		return u
	default:
		return &unzipper{in: bufio.NewReaderSize(nil, 64<<10), zip: new(gzip.Reader), buf: make([]byte, 64<<10)}
	}
}

func (l *loading) putBack(u *unzipper) {
	u.in.Reset(nil)
	select {
	case l.idle <- u:
	default:
	}
}

// open reads what is in a gzip stream, of any number of members; other streams as they are.
func (u *unzipper) open(r io.Reader) (io.Reader, error) {
	u.in.Reset(r)
	if magic, _ := u.in.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return u.in, nil // what is wrong with a stream that has ended already, reading it says
	}
	return u.zip, u.zip.Reset(u.in)
}

// noted remembers an error of its reader other than its end.
type noted struct {
	r   io.Reader
	err error
}

func (n *noted) Read(p []byte) (int, error) {
	k, err := n.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return k, err
}
