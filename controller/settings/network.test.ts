import { expect, test } from "vitest";
import { isNetwork, networkOf, Networks } from "./network.ts";

test.each([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["::FFFF:c000:0207", "192.0.2.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:0DB8:0001:0002::9", "2001:db8:1:2::/64"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["test", "test"],
  ["", ""],
])("%s counts as %s", (address, network) => {
  expect(networkOf(address)).toBe(network);
});

test("a list of networks includes what lies in one of them, however the address is written", () => {
  const networks = new Networks(["10.0.0.0/8", "192.0.2.1", "2001:db8::/32", "rubbish"]);
  for (const address of ["10.255.0.1", "192.0.2.1", "2001:db8:ffff::1", "::ffff:10.0.0.1"])
    expect(networks.includes(address), address).toBe(true);
  for (const address of ["11.0.0.1", "192.0.2.2", "2001:db9::1", "::1", "rubbish", ""])
    expect(networks.includes(address), address).toBe(false);
  expect(["10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/8/8", "10.0.0.0/", "host", ""].filter(isNetwork)).toEqual([]);
});
