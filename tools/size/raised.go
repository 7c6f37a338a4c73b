package main

import (
	"fmt"
	"os/exec"
	"strings"
)

// raised names the bounds that commits raised without a line "Raises: <name>" in their message.
func raised(file string) ([]string, error) {
	log, err := exec.Command("git", "log", "--reverse", "--format=%H%n%B%x00", "--", file).Output()
	if err != nil {
		return nil, fmt.Errorf("read the history of %s: %w", file, err)
	}
	var wrong []string
	var before map[string]int
	for entry := range strings.SplitSeq(strings.TrimRight(string(log), "\x00\n"), "\x00") {
		commit, message, _ := strings.Cut(strings.TrimSpace(entry), "\n")
		text, err := exec.Command("git", "show", commit+":./"+file).Output()
		if err != nil {
			return nil, fmt.Errorf("read %s of commit %s: %w", file, commit, err)
		}
		bounds, err := readBounds(text)
		if err != nil {
			return nil, err
		}
		for name, bound := range bounds {
			if old, ok := before[name]; ok && bound > old && !strings.Contains(message, "Raises: "+name) {
				wrong = append(wrong, fmt.Sprintf("%s (commit %.8s)", name, commit))
			}
		}
		before = bounds
	}
	return wrong, nil
}
