package store

import (
	"bytes"

	"golang.org/x/sys/unix"
)

// networkFileSystem names the network file system that dir lies on; empty for local ones and when it cannot be told.
func networkFileSystem(dir string) string {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return ""
	}
	name, _, _ := bytes.Cut(s.Fstypename[:], []byte{0})
	switch kind := string(name); kind {
	case "nfs", "smbfs", "afpfs", "webdav", "cifs":
		return kind
	default:
		return ""
	}
}
