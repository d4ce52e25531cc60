// Package systemd tells the service manager how the daemon is: ready, stopping,
// alive (sd_notify(3)). Without a service manager everything here does nothing.
//
// The watchdog is fed only while the daemon's own check succeeds, so that a
// daemon that hangs is restarted; forwarding goes on meanwhile.
package systemd
