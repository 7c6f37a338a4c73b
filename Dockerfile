# Postroom as an image of one static program: no shell, no package, not root.
#
#   docker build --build-arg VERSION=1.2.3 -t postroom .
#   docker run -p 127.0.0.1:3000:3000 -v postroom:/data -e POSTROOM_REDIS_URL=redis://… postroom
#
# There is no redis-server inside: without POSTROOM_REDIS_URL Postroom doesn't start. deploy/compose.yaml runs both.

FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev TARGETOS TARGETARCH
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH sh tools/build.sh /out/postroom "${VERSION}"
RUN mkdir /out/data

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/postroom /usr/local/bin/postroom
COPY --from=build --chown=65532:65532 /out/data /data
ENV POSTROOM_HTTP_LISTEN=:3000 POSTROOM_DATA=/data
USER 65532:65532
VOLUME /data
EXPOSE 3000
# Asks /ready, as far as the role has an API; a worker answers for its Redis.
HEALTHCHECK --interval=10s --timeout=10s --start-period=30s CMD ["/usr/local/bin/postroom", "doctor", "--quick"]
ENTRYPOINT ["/usr/local/bin/postroom"]
CMD ["serve"]
