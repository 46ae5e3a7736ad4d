import { AppError } from "../../../common/errors.ts";
import { TENANT_CONFIG_MAX_BYTES, TENANT_IMAGE_MAX_BYTES, TENANT_TEXT_MAX_CHARACTERS } from "../../../common/limits.ts";
import { checkQuota } from "./quotas.ts";
import type { CompanyChange } from "./types.ts";

const REPLICATION_FACTOR = /^[1-9]$/;
/** A data URI, an address, or an empty text. */
const IMAGE = /^(data:image\/[\w.+-]{1,64};base64,[A-Za-z0-9+/=]*|(https?:\/)?\/[^\s\p{Cc}]*)?$/u;
const UNPRINTABLE = /[\p{Cc}\p{Cs}]/u;

/** Throws `AppError("invalid")` or `too_large`; the error names the member. */
export function checkChange(change: CompanyChange): void {
  const { fullname, title, web, icon, logo, config } = change;
  for (const [member, text] of Object.entries({ fullname, title, web })) checkText(member, text);
  for (const [member, image] of Object.entries({ icon, logo })) checkImage(member, image);
  if (config === undefined) return;
  if (Buffer.byteLength(JSON.stringify(config)) > TENANT_CONFIG_MAX_BYTES)
    throw tooLarge("config", TENANT_CONFIG_MAX_BYTES, "TENANT_CONFIG_MAX_BYTES");
  replicationFactorOf(config);
  checkQuota(config);
}

/** Number of replicas of the tenant's data; `undefined`: the engine decides. */
export function replicationFactorOf(config: CompanyChange["config"]): number | undefined {
  const text = config?.replication_factor;
  if (text === undefined || text === "") return undefined;
  if (!REPLICATION_FACTOR.test(text)) throw invalid("config.replication_factor", "a whole number from 1 to 9");
  return Number(text);
}

function checkText(member: string, text: string | undefined): void {
  if (text === undefined) return;
  if (text.length > TENANT_TEXT_MAX_CHARACTERS)
    throw tooLarge(member, TENANT_TEXT_MAX_CHARACTERS, "TENANT_TEXT_MAX_CHARACTERS");
  if (UNPRINTABLE.test(text)) throw invalid(member, "a text without control characters");
}

function checkImage(member: string, image: string | undefined): void {
  if (image === undefined) return;
  if (image.length > TENANT_IMAGE_MAX_BYTES) throw tooLarge(member, TENANT_IMAGE_MAX_BYTES, "TENANT_IMAGE_MAX_BYTES");
  if (!IMAGE.test(image)) throw invalid(member, "a data URI with an image in base64, or the address of one");
}

function invalid(member: string, form: string): AppError {
  return new AppError("invalid", `${member} must be ${form}.`, { details: { fields: [member] } });
}

function tooLarge(member: string, max: number, limit: string): AppError {
  return new AppError("too_large", `${member} is longer than ${max}.`, { details: { limit } });
}
