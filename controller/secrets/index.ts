export { openSecretKey } from "./key-file.ts";
export { secretBox, type KeyRing } from "./key-ring.ts";
export { isMask, MASK } from "./mask.ts";
export { sealedUnder, type SealedItem, type SealedKind } from "./sealed.ts";
export { keyIdOf, type SecretBox } from "./secret-box.ts";
export { secretsOf, type KeySource } from "./secret-key.ts";
