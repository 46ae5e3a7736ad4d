import { isIPv4, isIPv6 } from "node:net";
import { Networks, plainAddress } from "../settings/network.ts";

/**
 * IPv4 addresses that are not public: this host, private and shared networks, link-local (clouds serve metadata of
 * their machines there), benchmarks, documentation, multicast, reserved.
 */
const CLOSED_V4 = new Networks([
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/3",
]);
const PUBLIC_V6 = new Networks(["2000::/3"]);
/** Parts of `PUBLIC_V6` that are not public: protocols that embed IPv4 addresses, and documentation. */
const CLOSED_V6 = new Networks(["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"]);

/**
 * The addresses that may be connected to: those of networks that the administrator opened, and public ones if allowed.
 */
export class OpenAddresses {
  readonly #opened: Networks;
  readonly #isPublicOpen: boolean;

  constructor(opened: readonly string[], isPublicOpen = true) {
    this.#opened = new Networks(opened);
    this.#isPublicOpen = isPublicOpen;
  }

  includes(address: string): boolean {
    const plain = plainAddress(address);
    if (this.#opened.includes(plain)) return true;
    if (!this.#isPublicOpen) return false;
    if (isIPv4(plain)) return !CLOSED_V4.includes(plain);
    return isIPv6(plain) && PUBLIC_V6.includes(plain) && !CLOSED_V6.includes(plain);
  }
}
