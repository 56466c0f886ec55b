package udp

func dontFragment(fd uintptr, v6 bool) error { return setOpts(int(fd), sendOpts(v6)) }
