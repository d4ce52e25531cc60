package programs

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-O2 -g -Wall -Wextra -Werror -Wno-address-of-packed-member -fno-strict-aliasing -mcpu=v3 -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu" -no-global-types -output-stem reference -type plan -type vip_key -type vip -type backend reference bpf/reference.bpf.c
