// Package systemd tells the service manager how the daemon is: ready, stopping,
// alive (sd_notify(3)). Without a service manager everything here does nothing.
//
// It also keeps descriptors beyond the end of a process, for the next one (StoreFD,
// Stored).
//
// The watchdog is fed only while the daemon's own check succeeds, so that a
// daemon that hangs is restarted; forwarding goes on meanwhile.
package systemd
