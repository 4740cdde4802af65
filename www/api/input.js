/** What a request may ask for: every value is checked here, before anything is done with it. */

/** A value is missing or not of the accepted form. The message says what would be accepted. */
export class BadInputError extends Error {}

/** The query of a request. */
export class Query {
  #parameters;

  constructor(parameters) {
    this.#parameters = parameters;
  }

  /** A short name that may become part of a Redis key. */
  name(parameter) {
    const text = this.#single(parameter);
    if (!/^[a-z0-9-]{1,32}$/.test(text)) {
      throw new BadInputError(`"${parameter}" must be 1 to 32 characters of a-z, 0-9 and "-".`);
    }
    return text;
  }

  /** One of these words; it may be left out where there is another to take. */
  oneOf(parameter, words, otherwise) {
    if (otherwise !== undefined && !this.#parameters.has(parameter)) return otherwise;
    const text = this.#single(parameter);
    if (!words.includes(text)) throw new BadInputError(`"${parameter}" must be one of ${words.join(", ")}.`);
    return text;
  }

  /** A whole number from `least` to `most`; it may be left out where there is another to take. */
  integer(parameter, least, most, otherwise) {
    if (otherwise !== undefined && !this.#parameters.has(parameter)) return otherwise;
    const text = this.#single(parameter);
    const number = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (!(number >= least && number <= most)) {
      throw new BadInputError(`"${parameter}" must be a whole number from ${least} to ${most}.`);
    }
    return number;
  }

  #single(parameter) {
    const values = this.#parameters.getAll(parameter);
    if (values.length !== 1) throw new BadInputError(`"${parameter}" must be given once.`);
    return values[0];
  }
}
