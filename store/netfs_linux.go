package store

import "golang.org/x/sys/unix"

// networkMagic are the file systems on which SQLite's locks and shared memory do not hold.
var networkMagic = map[uint32]string{
	0x6969:     "nfs",
	0x517b:     "smb",
	0xff534d42: "cifs",
	0xfe534d42: "smb2",
	0x00c36400: "ceph",
	0x0bd00bd0: "lustre",
	0x47504653: "gpfs",
	0x19830326: "beegfs",
	0x5346414f: "afs",
	0x6b414653: "afs",
	0x01021997: "9p",
	0x7461636f: "ocfs2",
	0x01161970: "gfs2",
	0xaad7aaea: "panfs",
}

// networkFileSystem names the network file system that dir lies on; empty for local ones and when it cannot be told.
func networkFileSystem(dir string) string {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return ""
	}
	return networkMagic[uint32(s.Type)]
}
