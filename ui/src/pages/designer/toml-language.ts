/** Colours of TOML for the editor. */

import { StreamLanguage } from '@codemirror/language';

export const tomlLanguage = StreamLanguage.define({
  name: 'toml',
  token(stream) {
    if (stream.eatSpace()) return null;
    if (stream.match(/#.*/)) return 'comment';
    if (stream.sol() && stream.match(/\[\[?[^\]]*\]\]?/)) return 'heading';
    if (stream.match(/"(?:[^"\\]|\\.)*"?|'[^']*'?/)) return 'string';
    if (stream.match(/(?:true|false)\b/)) return 'bool';
    if (stream.match(/[A-Za-z_-][\w-]*(?=\s*=)/)) return 'propertyName';
    if (stream.match(/[+-]?\d[\d_]*(?:\.\d+)?/)) return 'number';
    stream.next();
    return null;
  },
});
