// Package e2e runs the built program against real things: Python, Chromium, the published annotation tool, generated
// clients. Its tests need bin/potato (`make e2e` builds it) and read like a manual of what the program promises.
package e2e
