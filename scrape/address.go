package scrape

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// errForbidden is the dialler's error for an address that a pod must not have.
var errForbidden = errors.New("the address is of this machine, its link or its cloud, not of a pod")

// refuseLocal checks the address that is really dialled, after any name has been resolved.
func refuseLocal(_ context.Context, _, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %.64q", errForbidden, address)
	}
	if local(a.Addr()) {
		return fmt.Errorf("%w: %v", errForbidden, a.Addr())
	}
	return nil
}

// local reports whether an address is loopback, link-local, multicast, unspecified or reserved, or one at which a cloud
// serves data that only this machine may read, in any of the forms in which IPv6 carries IPv4.
func local(ip netip.Addr) bool {
	if inner, ok := carried(ip); ok {
		return local(inner)
	}
	if ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() {
		return true
	}
	for _, p := range reserved() {
		if p.Contains(ip.WithZone("")) {
			return true
		}
	}
	return false
}

// reserved are networks without pods.
func reserved() [10]netip.Prefix {
	v4 := func(bits int, b ...byte) netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte(b)), bits) }
	v6 := func(bits int, words ...uint16) netip.Prefix {
		var b [16]byte
		for i, w := range words {
			b[2*i], b[2*i+1] = byte(w>>8), byte(w)
		}
		return netip.PrefixFrom(netip.AddrFrom16(b), bits)
	}
	return [...]netip.Prefix{
		v4(8, 0, 0, 0, 0),                                 // this network
		v4(24, 192, 0, 0, 0),                              // protocol assignments; 192.0.0.192 is the metadata service of Oracle
		v4(32, 100, 100, 100, 200),                        // Alibaba
		v4(32, 168, 63, 129, 16),                          // Azure
		v4(4, 240, 0, 0, 0),                               // reserved, and broadcast
		v6(32, 0xfd00, 0xec2),                             // AWS, at fd00:ec2::254, and its other services
		v6(64, 0xfd20, 0xce),                              // Google, at fd20:ce::254
		v6(128, 0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe), // Oracle
		v6(10, 0xfec0),                                    // site-local, deprecated
		v6(48, 0x64, 0xff9b, 1),                           // local-use NAT64, which may carry IPv4 at several positions
	}
}

// carried returns the IPv4 address that an IPv6 address contains: mapped, compatible, translated, NAT64, 6to4, Teredo or
// ISATAP.
func carried(ip netip.Addr) (netip.Addr, bool) {
	if ip.Is4() {
		return ip, false
	}
	b := ip.As16()
	at := func(i int) (netip.Addr, bool) { return netip.AddrFrom4([4]byte(b[i : i+4])), true }
	begins := func(prefix ...byte) bool { return string(b[:len(prefix)]) == string(prefix) }
	switch {
	case ip.Is4In6():
		return at(12)
	case begins(0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0): // translated, ::ffff:0:a.b.c.d
		return at(12)
	case begins(make([]byte, 12)...): // compatible, ::a.b.c.d; ::1 is in 0.0.0.0/8 then
		return at(12)
	case begins(0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0): // NAT64
		return at(12)
	case begins(0x20, 0x02): // 6to4
		return at(2)
	case begins(0x20, 0x01, 0, 0): // Teredo has the client's address inverted
		for i := 12; i < 16; i++ {
			b[i] ^= 0xff
		}
		return at(12)
	case b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe: // ISATAP
		return at(12)
	}
	return ip, false
}
