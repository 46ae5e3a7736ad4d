import { BlockList, isIP, isIPv6 } from "node:net";

/** Addresses and networks as an operator lists them: `192.0.2.1`, `10.0.0.0/8`, `2001:db8::/32`. */
export class Networks {
  readonly #list = new BlockList();

  /** Texts for which `isNetwork` does not hold are left out. */
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

/** Whether only this machine reaches what listens there. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || LOOPBACK.includes(host);
}

/** Whether a text is an address, or a network as address and length of its prefix. */
export function isNetwork(text: string): boolean {
  const [address = "", prefix, ...more] = text.split("/");
  if (isIP(address) === 0 || more.length > 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bitsOf(address));
}

function bitsOf(address: string): number {
  return isIPv6(address) ? 128 : 32;
}

/**
 * What stands for one client where clients are counted by address: an IPv4 address as it is, of IPv6 the first 64 bits,
 * since one client has all addresses of such a network. IPv4 written as IPv6 is IPv4. Other texts stand for themselves.
 */
export function networkOf(address: string): string {
  const [text = ""] = address.split("%", 1);
  if (!isIPv6(text)) return text;
  // The URL parser of the platform knows every way to write one: what it answers has groups of hex digits only.
  const groups = expanded(new URL(`http://[${text}]`).hostname.slice(1, -1));
  return isMapped(groups) ? dotted(groups) : `${groups.slice(0, 4).join(":")}::/64`;
}

/** An IPv4 address that is written as IPv6, as IPv4; others as they are, without a zone. */
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
