import type { Growth } from "../objects/index.ts";

export const NOTHING: Growth = { objects: 0, bytes: 0 };

export function sum(one: Growth, other: Growth): Growth {
  return { objects: one.objects + other.objects, bytes: one.bytes + other.bytes };
}

export function minus({ objects, bytes }: Growth): Growth {
  return { objects: -objects, bytes: -bytes };
}

/** The growth, with 0 for each negative measure. */
export function noLess({ objects, bytes }: Growth): Growth {
  return { objects: Math.max(0, objects), bytes: Math.max(0, bytes) };
}
