import { AppError } from "../../common/errors.ts";

/** Bounds of what unpacking one archive may cost. */
export interface ArchiveBounds {
  /** Files and folders in the archive. */
  readonly entriesMax: number;
  readonly unpackedMaxBytes: number;
  /** Unpacked bytes per packed byte, beyond `ratioFreeBytes`. */
  readonly ratioMax: number;
  readonly ratioFreeBytes: number;
}

/** Maximum number of bytes that an archive of this size may unpack to, by its ratio alone. */
export function unpackedByRatio({ ratioMax, ratioFreeBytes }: ArchiveBounds, packedBytes: number): number {
  return packedBytes * ratioMax + ratioFreeBytes;
}

export function unpacksTooMuch({ unpackedMaxBytes, ratioMax }: ArchiveBounds): AppError {
  return new AppError(
    "too_large",
    "The archive unpacks to more than allowed: " +
      `at most ${unpackedMaxBytes} bytes, and at most ${ratioMax} times its own size.`,
  );
}

export function tooManyEntries({ entriesMax }: ArchiveBounds): AppError {
  return new AppError("too_large", `An archive holds at most ${entriesMax} files and folders.`);
}
