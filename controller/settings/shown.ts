import { SETTINGS, type Setting } from "./catalogue.ts";
import type { Given } from "./values.ts";

/** A setting as callers see it. */
export interface ShownSetting {
  readonly name: string;
  /** Its text; absent if it is not given, or secret. */
  readonly value?: string;
  /** The value, or the way to it, if none is given. */
  readonly default: string;
  /** True if a variable or the file gives it. */
  readonly given: boolean;
}

/** User and password in an address. */
const CREDENTIALS = /\/\/[^/@\s]*@/g;

/** All settings in the order of their page, without secrets. An empty text is none, as for the controller. */
export function shownSettings(given: Given): readonly ShownSetting[] {
  return SETTINGS.map((setting: Setting & { readonly name: (typeof SETTINGS)[number]["name"] }) => {
    const { name, default: otherwise, isSecret } = setting;
    const text = given.get(name) ?? "";
    const value = text === "" || isSecret === true ? undefined : text.replaceAll(CREDENTIALS, "//");
    return { name, ...(value !== undefined && { value }), default: otherwise, given: text !== "" };
  });
}
