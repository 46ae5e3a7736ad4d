import { BlockList, isIP, isIPv6 } from "node:net";

/** Addresses and networks as an operator lists them: `192.0.2.1`, `10.0.0.0/8`, `2001:db8::/32`. */
export class Networks {
  readonly #list = new BlockList();

  /** Ignores texts for which `isNetwork` returns false. */
  constructor(networks: readonly string[]) {
    for (const network of networks) {
      const [address = "", prefix] = network.split("/");
      const family = isIPv6(address) ? "ipv6" : "ipv4";
      if (isNetwork(network))
        this.#list.addSubnet(address, prefix === undefined ? bitsOf(address) : Number(prefix), family);
    }
  }

  includes(address: string): boolean {
    if (isIP(address) === 0) return false;
    return this.#list.check(address, isIPv6(address) ? "ipv6" : "ipv4");
  }
}

const LOOPBACK = new Networks(["127.0.0.0/8", "::1"]);

/** Returns true if only this machine can connect to that address. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || LOOPBACK.includes(host);
}

/** Returns true if the text is an address, or a network as an address and a prefix length. */
export function isNetwork(text: string): boolean {
  const [address = "", prefix, ...more] = text.split("/");
  if (isIP(address) === 0 || more.length > 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bitsOf(address));
}

function bitsOf(address: string): number {
  return isIPv6(address) ? 128 : 32;
}

/**
 * Key of a client when clients are counted by address: an IPv4 address itself; the first 64 bits of an IPv6 address,
 * since one client owns such a network. IPv4 written as IPv6 counts as IPv4. Other texts are returned unchanged.
 */
export function networkOf(address: string): string {
  const [text = ""] = address.split("%", 1);
  if (!isIPv6(text)) return text;
  // The platform's URL parser knows all notations of an address. Its output has groups of hex digits only.
  const groups = expanded(new URL(`http://[${text}]`).hostname.slice(1, -1));
  return isMapped(groups) ? dotted(groups) : `${groups.slice(0, 4).join(":")}::/64`;
}

/** Converts an IPv4 address written as IPv6 to IPv4; returns others unchanged, without a zone. */
export function plainAddress(address: string): string {
  const [text = ""] = address.split("%", 1);
  if (!isIPv6(text)) return text;
  const groups = expanded(new URL(`http://[${text}]`).hostname.slice(1, -1));
  return isMapped(groups) ? dotted(groups) : text;
}

function expanded(text: string): readonly string[] {
  const [before = "", after] = text.split("::");
  const [left, right] = [groupsOf(before), groupsOf(after ?? "")];
  return after === undefined
    ? left
    : [...left, ...Array.from({ length: 8 - left.length - right.length }, () => "0"), ...right];
}

function groupsOf(text: string): readonly string[] {
  return text === "" ? [] : text.split(":");
}

function isMapped(groups: readonly string[]): boolean {
  return groups.slice(0, 5).every((group) => group === "0") && groups[5] === "ffff";
}

function dotted(groups: readonly string[]): string {
  return groups
    .slice(6)
    .map((group) => Number.parseInt(group, 16))
    .map((pair) => `${pair >> 8}.${pair & 0xff}`)
    .join(".");
}
