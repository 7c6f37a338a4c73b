package redisdb

import (
	"errors"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// MachineMemory returns the memory that this process and its children may use, in bytes: the machine's, or
// their container's limit (cgroup) if that is less.
func MachineMemory() (int64, error) {
	machine, err := memlimit.FromSystem()
	container, none := memlimit.FromCgroup()
	switch {
	case none != nil && err != nil:
		return 0, errors.Join(err, none)
	case none != nil:
		return int64(machine), nil
	case err != nil:
		return int64(container), nil
	}
	return int64(min(machine, container)), nil
}
