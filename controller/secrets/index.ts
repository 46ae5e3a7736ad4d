export { openSecretKey } from "./key-file.ts";
export { isMask, MASK } from "./mask.ts";
export { secretBox, type SecretBox } from "./secret-box.ts";
export { secretsOf, type KeySource } from "./secret-key.ts";
