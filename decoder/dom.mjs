/** Short forms for building and finding elements, and for copying. */

/** Returns the element with this ID. */
export function $(id) {
    return document.getElementById(id);
}

/**
 * Creates an element.
 *
 * @param {string} tag
 * @param {Record<string, string | number | boolean>} [attributes] An attribute that is false is left out.
 * @param {...(Node | string)} children
 */
export function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (value !== false) made.setAttribute(name, value === true ? "" : String(value));
    }
    made.append(...children);
    return made;
}

/** Creates a button that copies a text. `what` names the text for a screen reader. */
export function copyButton(text, what) {
    const button = element("button", { type: "button", class: "copy", "aria-label": `Copy ${what}` }, "Copy");
    button.addEventListener("click", () => copy(text, what));
    return button;
}

/** Copies a text, and says that it was copied. */
export async function copy(text, what) {
    const copied = await write(text);
    say(copied ? `Copied ${what}.` : `The browser does not allow copying. Select the text and copy it.`);
}

async function write(text) {
    try {
        await navigator.clipboard.writeText(text);
        return true;
    } catch {
        // The browser provides no clipboard on a page that was loaded over plain HTTP.
        const area = element("textarea", { class: "offscreen", readonly: true }, text);
        const focused = document.activeElement;
        document.body.append(area);
        area.select();
        const copied = document.execCommand("copy");
        area.remove();
        focused?.focus();
        return copied;
    }
}

let hiding;

function say(text) {
    $("toast").textContent = text;
    clearTimeout(hiding);
    hiding = setTimeout(() => ($("toast").textContent = ""), 4_000);
}
