//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sqlite

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// lockDir keeps other processes from opening databases in dir until unlock is called. It
// makes putting a damaged file aside safe: a connection that is just being opened would
// find the side files of another database under its names. A file system without such
// locks goes without.
func lockDir(ctx context.Context, dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return func() { f.Close() }, nil // closing unlocks
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			f.Close()
			return nil, errors.New("another process is opening it: " + ctx.Err().Error())
		}
	}
}

// inUse tells whether another process has the database open: SQLite holds a lock on these
// bytes for as long as a connection in WAL mode lives. Moving the file away from under it
// would have it delete the new database's log when it ends.
func inUse(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	const sharedFirst, sharedSize = 0x40000002, 510
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: sharedFirst, Len: sharedSize}
	err = syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock)
	return err == nil && lock.Type != syscall.F_UNLCK
}
