package route

// failover takes the members as they are written.
type failover struct{}

func (failover) order(dst []int, b *branch, _ *walk) []int {
	for i := range b.members {
		dst = append(dst, i)
	}
	return dst
}
