package agent

// Ranks are how many ranks there are on this node and in all, which node it is, and where they meet.
func Ranks(getenv func(string) string, perNode int) (local, world, node int, addr, port string, err error) {
	p, err := planRanks(getenv, perNode)
	if err == nil {
		err = p.meet(getenv)
	}
	return p.local, p.world(), p.node, p.addr, p.port, err
}
