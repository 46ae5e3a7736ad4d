import { describe, expect, test } from "vitest";
import { namesOwnHost, provesOrigin, type OwnAddress } from "./origin.ts";

const own: OwnAddress = { host: "odp.example", protocol: "https", publicNames: ["odp.public"] };
const plain: OwnAddress = { ...own, protocol: "http" };

describe("a call by cookie of an origin", () => {
  test.each<readonly [string, OwnAddress, string, boolean]>([
    ["of its own", own, "https://odp.example", true],
    ["of its own by plain HTTP, which anybody on the way can make", own, "http://odp.example", false],
    ["of its public name by plain HTTP", own, "http://odp.public", false],
    ["of its public name", own, "https://odp.public", true],
    ["of its public name on another port", own, "https://odp.public:8443", false],
    ["by HTTPS, where TLS ends at a proxy that is not configured", plain, "https://odp.example", true],
    ["by HTTP, where it came so", plain, "http://odp.example", true],
    ["of another site", own, "https://evil.example", false],
    ["of its own host on another port", own, "https://odp.example:8443", false],
    ["that is none", own, "null", false],
  ])("%s", (_case, address, origin, isProven) => {
    expect(provesOrigin({ origin }, address, "cookie")).toBe(isProven);
    expect(provesOrigin({ referer: `${origin}/page`, "user-agent": "Mozilla/5.0" }, address, "cookie")).toBe(isProven);
  });
});

test.each<readonly [string, boolean]>([
  ["127.0.0.1:8080", true],
  ["[::1]:8080", true],
  ["192.0.2.7", true],
  ["localhost:8080", true],
  ["odp.public:8080", true],
  ["ODP.Public", true],
  ["", true],
  ["evil.example:8080", false],
  ["127.0.0.1.evil.example", false],
  ["localhost.evil.example", false],
  ["odp.public.evil.example", false],
  ["a b", false],
])("the host %j is one of ours: %s", (host, isOurs) => {
  expect(namesOwnHost({ host, publicNames: ["odp.public", "Odp.Public"] })).toBe(isOurs);
});
