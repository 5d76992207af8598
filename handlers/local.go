package handlers

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// fromHere reports whether the request was made on this machine, by someone who meant this machine: the sender's address
// is loopback, no proxy passed it on, and the Host is one that no foreign page can bear (DNS rebinding).
func fromHere(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback() && !forwarded(r.Header) && localHost(r.Host)
}

// forwarded reports whether a proxy says that it passes the request on for somebody else.
func forwarded(h http.Header) bool {
	for name := range h {
		switch name {
		case "Forwarded", "Via", "X-Real-Ip":
			return true
		}
		if strings.HasPrefix(name, "X-Forwarded-") {
			return true
		}
	}
	return false
}

func localHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	switch strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), ".")) {
	case "localhost", "127.0.0.1", "::1":
		return true
	}
	return false
}

// sender is the address that the request came from, to tell senders apart. What X-Forwarded-For says counts only when a
// trusted proxy says it, and then as far back as the proxies are trusted: everything before that anyone can write.
func (h *Handlers) sender(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	addr := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && h.trusts(addr); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		addr = hop.Unmap()
	}
	return addr.String()
}

func (h *Handlers) trusts(a netip.Addr) bool {
	for _, p := range h.TrustedProxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
