import { AppError } from "../../common/errors.ts";
import { isNetwork } from "./network.ts";
import type { SettingName } from "./catalogue.ts";

/** Texts of the settings that are given, by a variable or the file. */
export type Given = ReadonlyMap<SettingName, string>;

export function portOf(given: Given, name: SettingName, otherwise: number): number {
  return whole(name, given.get(name) || String(otherwise), { from: 0, to: 65_535 });
}

export function whole(name: SettingName, text: string, { from, to }: { from: number; to: number }): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < from || value > to)
    throw wrong(name, `it must be a whole number from ${from} to ${to}, not ${text}`);
  return value;
}

export function replicas(text: string | undefined): number | undefined {
  return text ? whole("cassandra_replication_factor", text, { from: 1, to: 9 }) : undefined;
}

export function yesOrNo(name: SettingName, text: string): boolean {
  return oneOf(name, text, ["0", "1"]) === "1";
}

export function oneOf<T extends string>(name: SettingName, text: string, values: readonly T[]): T {
  const value = values.find((candidate) => candidate === text);
  if (value === undefined) throw wrong(name, `it must be one of ${values.join(", ")}, not ${text}`);
  return value;
}

export function matching(name: SettingName, text: string, pattern: RegExp, form: string): string {
  if (!pattern.test(text)) throw wrong(name, `it must be ${form}, not ${text}`);
  return text;
}

export function list(text: string): readonly string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

export function networks(name: SettingName, text: string): readonly string[] {
  const all = list(text);
  const wrongOne = all.find((one) => !isNetwork(one));
  if (wrongOne !== undefined)
    throw wrong(name, `it must be addresses or networks such as 10.0.0.0/8, separated by commas, not ${wrongOne}`);
  return all;
}

export function endpoints(name: SettingName, text: string): readonly string[] {
  const all = list(text.replaceAll(/https?:\/\//g, ""));
  for (const one of all)
    matching(name, one, /^(\[[0-9a-f:]+\]|[^:\s]+):\d{1,5}$/i, "host:port, several separated by commas");
  return all;
}

export function wrong(name: string, why: string): AppError {
  return new AppError("invalid", `The setting ${name} (ODP_${name.toUpperCase()}) is wrong: ${why}.`);
}
