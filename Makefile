# The two commands of the README. Each does all the set-up that it needs.
.PHONY: demo test build servers mysql redis bench fuzz clean

# demo: from nothing to a verdict. 200 buyers of one product, ten connections.
demo: servers build
	bin/chokepoint run lock --strategy pessimistic --concurrency 200 --duration 10s --pool 10

# test: formatting, vet, unit tests and tests on real servers.
test: servers
	scripts/test.sh

build:
	go build -o bin/chokepoint ./cmd/chokepoint

# servers: installs MariaDB and Redis where they are missing and we may; starts
# no service.
servers:
	@scripts/install-servers.sh

# mysql: unpacks MySQL beside the system into the cache folder (Debian; 290 MB),
# for --sandbox mysql and the tests on it.
mysql:
	@scripts/install-tree.sh mysql

# redis: the same for the newest Redis and Valkey (100 MB); tests use all there are.
redis:
	@scripts/install-tree.sh redis

# bench: what watching costs: the same load with and without it, in turn.
bench: servers
	go test ./cmd/chokepoint -run '^$$' -bench Observer -benchtime 1x -timeout 20m

# fuzz: each parser for an hour.
fuzz:
	scripts/fuzz.sh 1h

clean:
	rm -rf bin
