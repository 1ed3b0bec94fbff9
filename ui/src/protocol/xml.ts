/** XML of the services: reading with the browser's parser, writing by hand. */

/** The root element of a document. Throws if the text is not well-formed. */
export function parseXml(text: string): Element {
  const document = new DOMParser().parseFromString(text.replace(/^\uFEFF/, ''), 'application/xml');
  const root = document.documentElement;
  if (!root || document.getElementsByTagName('parsererror').length > 0) {
    throw new Error('The server answered with XML that cannot be read.');
  }
  return root;
}

/** The child elements with a name, whatever its prefix; all without a name. */
export function children(parent: Element | undefined, name?: string): Element[] {
  const found: Element[] = [];
  for (let node = parent?.firstChild ?? null; node; node = node.nextSibling) {
    if (node.nodeType === 1 && (name === undefined || (node as Element).localName === name)) {
      found.push(node as Element);
    }
  }
  return found;
}

export function child(parent: Element | undefined, name: string): Element | undefined {
  for (let node = parent?.firstChild ?? null; node; node = node.nextSibling) {
    if (node.nodeType === 1 && (node as Element).localName === name) return node as Element;
  }
  return undefined;
}

/** The text of a child element; `undefined` if there is none. */
export function childText(parent: Element | undefined, name: string): string | undefined {
  return child(parent, name)?.textContent ?? undefined;
}

/** An element as text: content that is a string is escaped, an array is children, `undefined` gives nothing. */
export function element(name: string, content: string | string[] | undefined): string {
  if (content === undefined) return '';
  const inner = typeof content === 'string' ? escapeXml(content) : content.join('');
  return `<${name}>${inner}</${name}>`;
}

export function document(root: string): string {
  return `<?xml version="1.0" encoding="utf-8"?>${root}`;
}

export function escapeXml(text: string): string {
  // A carriage return would be read as a line feed if it were not escaped.
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll('\r', '&#xD;');
}
